package predict

import _ "embed" // the file

// MeasuredQEMU is a table with one migration a line: see [Read].
//
//go:embed qemu-7.2.csv
var MeasuredQEMU string

// measuredFeatures is a table with further migrations of features: several connections, their compression,
// and TLS with certificates.
//
//go:embed qemu-7.2-features.csv
var measuredFeatures string

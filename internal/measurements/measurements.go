// Package measurements holds migrations that were measured with QEMU 7.2, for tests and for
// godwit bench accuracy.
package measurements

import _ "embed" // the file

// QEMU is a table with one migration a line: see package bench.
//
//go:embed qemu-7.2.csv
var QEMU string

// Features is a table with further migrations of features: several connections, their compression,
// and TLS with certificates.
//
//go:embed qemu-7.2-features.csv
var Features string

package inventory

import "github.com/godwit-vm/godwit/inventory/document"

// MaxInput is how many bytes of godwit's own YAML are read.
const MaxInput = document.MaxSize

// A Problem is something wrong with a file: where, and what.
type Problem = document.Problem

// Problems are everything that is wrong with a file.
type Problems = document.Problems

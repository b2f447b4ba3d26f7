package inventory

import "github.com/godwit-vm/godwit/internal/yamldoc"

// A Problem is something wrong with a file: where, and what.
type Problem = yamldoc.Problem

// Problems are everything that is wrong with a file.
type Problems = yamldoc.Problems

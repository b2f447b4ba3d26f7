package inventory

import "github.com/godwit-vm/godwit/internal/yamldoc"

// A Problem is something wrong with a file. It is an error: "file:line: field: message". Its fields
// are
//
//	File    string // as it was given to the reader
//	Line    int    // from 1; 0 when the problem has no place
//	Field   string // "vms[3].memory", "vm prod/db spec.nodeName", or ""
//	Message string
type Problem = yamldoc.Problem

// Problems are everything that is wrong with a file, by line, as an error: a []Problem that is not
// empty. errors.As finds it in the error of each reader of files, also of package sim's, and finds
// its first Problem, too.
type Problems = yamldoc.Problems

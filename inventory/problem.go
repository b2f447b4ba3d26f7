package inventory

import "github.com/godwit-vm/godwit/internal/yamldoc"

// A Problem is something wrong with a file. It is an error: "file:line: field: message". Its fields
// are
//
//	File    string // as it was given to the reader
//	Line    int    // from 1; 0 when the problem has no place
//	Field   string // which one; see below
//	Message string
//
// Field is written in two ways. What is wrong with one entry as it is written has its path,
// "vms[3].memory". What is found when the fleet is put together, where an entry may stand for many VMs, and what
// is wrong with an object of another format, has the name of the host, VM, policy or object, and the field after
// a space: "vm default/web host". It is "" where the problem has no field.
type Problem = yamldoc.Problem

// Problems are what is wrong with a file, by line, as an error: a []Problem that is not
// empty. errors.As finds it in the error of each reader of files, also of package sim's, and finds
// its first Problem, too.
//
// Fields that are unknown, or of another kind (a list where a text belongs), are looked for first, and the
// rest of the file only when there are none; of those of a file above 50 KiB some may be left out. At most 20 problems are listed; one more, without a place,
// says how many were left out: "and 3 more problems".
type Problems = yamldoc.Problems

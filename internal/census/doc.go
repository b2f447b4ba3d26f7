// Package census counts what the repository is tested with: properties, which hold for whatever
// is drawn, and scenarios, which are a situation, what happens in it, and what is expected.
// It also finds the two that are most alike, so that nobody makes the numbers grow with copies.
//
// A property is a function that is given to rapid or to simtest.Check, or a fuzz target. One
// that is checked and fuzzed is one property. [Properties] finds them in the source.
//
// A scenario is a text, or a case of a conformance suite. [Scenarios] lists where they are,
// and what begins one where a file has several.
//
// Two of them are compared as people would who squint: names, numbers, comments and layout do
// not count. What is left is a sequence of tokens; the [Item]'s shingles are the runs of four
// of them, as a set; and the likeness of two items is the share of their shingles that both
// have (Jaccard's index). A copy in which a name, a size and a time are others has 1.
//
// The package reads files and says what it found. Its test holds the repository to the
// numbers.
package census

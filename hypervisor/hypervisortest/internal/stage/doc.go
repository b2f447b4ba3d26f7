// Package stage is what cases of the conformance suite are played on: two hosts,
// what a case asks of them, and what it waits for. It decides nothing about
// backends; a method fails the case when what it asks for does not happen.
package stage

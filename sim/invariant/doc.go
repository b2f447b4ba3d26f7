// Package invariant says what holds in every simulated world, whatever breaks: the
// promises of godwit, each a named function, written once and checked everywhere.
// It looks at a world and changes nothing.
package invariant

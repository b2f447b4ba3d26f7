package inventory

import "strconv"

// A path is where a spec says something, such as vms[3].memory. It becomes a text only when
// it is needed: with most of what is read nothing is wrong.
type path struct {
	list  string // "vms"; or all of it
	entry int    // counted from 1; 0 is none
	field string // ".memory"
}

// entry returns the path of an entry of a list, counted from 0.
func entry(list string, i int) path { return path{list: list, entry: i + 1} }

// dot returns the path of what is inside, given with its dot: ".memory".
func (p path) dot(field string) path {
	p.field += field
	return p
}

// String writes the path.
func (p path) String() string {
	if p.entry == 0 {
		return p.list + p.field
	}
	return p.list + "[" + strconv.Itoa(p.entry-1) + "]" + p.field
}

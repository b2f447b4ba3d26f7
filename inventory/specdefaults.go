package inventory

// ReadDefaults checks the defaults of a spec alone, for a fleet that is read from
// another file. The name is that of the file the spec comes from; lines may be nil.
func (s *Spec) ReadDefaults(name string, lines Positions) (Defaults, error) {
	b := newSpecBuilder(name, lines)
	d := b.readDefaults(s)
	return d, b.Err()
}

package audit

// Stepped returns a rotation that calls f after each of its steps.
func (r Rotation) Stepped(f func()) Rotation {
	r.stepped = f
	return r
}

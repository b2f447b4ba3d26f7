package names

// Pieces makes values that stay where they are. They are cut from pieces that grow with their
// number, so that of very many there are few pieces for the collector to mark. The zero value
// is ready.
type Pieces[T any] struct {
	rest []T
	made int
}

// largest is how many values a piece has at most.
const largest = 128

// New returns another value, which is zero.
func (p *Pieces[T]) New() *T {
	if len(p.rest) == 0 {
		p.rest = make([]T, min(1+p.made/8, largest))
	}
	t := &p.rest[0]
	p.rest = p.rest[1:]
	p.made++
	return t
}

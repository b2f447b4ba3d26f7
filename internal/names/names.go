// Package names keeps very many things that stay, and finds the few that are busy: [Store] is
// for their names, [Pieces] for the things themselves, [Register] for looking them up. What is
// kept lies in few pieces of memory: what collects garbage marks a piece, not each thing, and
// what was made together lies together.
package names

import "strings"

// Pieces grow with what they hold, up to a size at which nobody notices a piece any more.
const (
	least = 1 << 8
	most  = 1 << 16
)

// A Store keeps names for as long as any of a piece is in use: it is for those that stay. The
// zero value is empty and ready.
type Store struct {
	piece strings.Builder
	held  int // in all pieces
}

// Keep returns name, kept.
func (s *Store) Keep(name string) string {
	if s.piece.Cap()-s.piece.Len() < len(name) {
		s.piece.Reset() // what was kept stays
		s.piece.Grow(max(len(name), least, min(s.held/4, most)))
	}
	from := s.piece.Len()
	s.piece.WriteString(name)
	s.held += len(name)
	return s.piece.String()[from:]
}

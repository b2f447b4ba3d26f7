package store

// A ChangeTracker is a feed that has changed, and its reader.
type ChangeTracker struct {
	Feed   Feed
	Reader any // that [Memory.Know] names
}

// Know names the reader of a feed: its changes carry the name.
func (s *Memory) Know(f Feed, reader any) {
	switch f {
	case Everything:
		s.all.reader = reader
	case Leases:
		s.leases.reader = reader
	default:
		s.feed(f.Host).reader = reader
	}
}

// News returns the feeds that changed since it was last called, or Changed was, in order. The
// answer is valid until it is called again.
func (s *Memory) News() []ChangeTracker {
	s.news = s.news[:0]
	for _, f := range s.changed {
		f.told = false
		s.news = append(s.news, ChangeTracker{f.name, f.reader})
	}
	s.changed = s.changed[:0]
	return s.news
}

// Changed is News without the readers.
func (s *Memory) Changed() []Feed {
	s.told = s.told[:0]
	for _, n := range s.News() {
		s.told = append(s.told, n.Feed)
	}
	return s.told
}

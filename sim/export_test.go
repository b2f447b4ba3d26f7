package sim

// The names that tests call these by.
type (
	LowerBound = lowerBound
)

// Unmarked reports whether the controller remembers nothing of the store.
func (w *World) Unmarked() bool { return w.past.unmarked }

// EventQueue is the name that tests call it by.
type EventQueue[T any] = eventQueue[T]

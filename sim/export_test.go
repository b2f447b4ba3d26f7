package sim

// The names that tests call these by.
type (
	LowerBound = lowerBound
)

// EventQueue is the name that tests call it by.
type EventQueue[T any] = eventQueue[T]

package fake

// What the tests in package fake_test see of the inside.

type (
	Alike[T comparable] = alike[T]
	EventQueue          = eventQueue
	List                = list
	News[E any]         = news[E]
	Timer               = timer
)

var (
	NeededBy = neededBy
	Possible = possible
	Resizes  = resizes
	Sensible = sensible
)

// Delete is deleteAt.
func Delete[E any](list []E, i int) []E { return deleteAt(list, i) }

// Insert is insertAt.
func Insert[E any](list []E, i int, e E) []E { return insertAt(list, i, e) }

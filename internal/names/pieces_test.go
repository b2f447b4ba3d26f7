package names_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/names"
)

// What is cut from pieces stays where it is, and each is another.
func TestPiecesAreApart(t *testing.T) {
	var pieces names.Pieces[int]
	var made []*int
	for i := range 2000 {
		made = append(made, pieces.New())
		if *made[i] != 0 {
			t.Fatalf("value %d is %d before anybody wrote it", i, *made[i])
		}
		*made[i] = i
	}
	for i, v := range made {
		if *v != i {
			t.Fatalf("value %d has become %d", i, *v)
		}
	}
}

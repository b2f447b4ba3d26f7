package controller_test

import (
	"testing"

	"github.com/godwit-vm/godwit/controller"
	"github.com/godwit-vm/godwit/migration"
)

func TestNamesOfMigrationsAreNumbered(t *testing.T) {
	for id, want := range map[migration.ID]int{
		controller.Name("shop/web", 7): 7, "a#b#12": 12, "12": 12, "web": 0, "web#": 0, "": 0,
		"web#99999999999999999999": 0, // what is no number gets none
	} {
		if got := controller.Number(id); got != want {
			t.Errorf("Number(%q) = %d, want %d", id, got, want)
		}
	}
}

package explore_test

import (
	"testing"

	"github.com/godwit-vm/godwit/internal/explore"
)

// scenes are the worlds that are explored, each for what it is about.
var scenes = []struct{ name, text string }{
	{"one VM moves", "hosts n1 n2\nvms web@n1\nscript migrate web\n"},
	{"one VM moves, and its move is cancelled",
		"hosts n1 n2\nvms web@n1\nscript migrate web\nscript cancel web\n"},
	{"one VM moves by post-copy, and its move is cancelled",
		"hosts n1 n2\nvms web@n1,busy\npost-copy\nscript migrate web\nscript cancel web\n"},
	{"a drain of two VMs", "hosts n1 n2 n3\nvms web@n1 db@n1\nscript drain n1\n"},
	{"a migration that is cancelled",
		"hosts n1 n2 n3\nvms web@n1 db@n2\nscript migrate web\nscript cancel web\n"},
	{"post-copy", "hosts n1 n2 n3\nvms web@n1,busy db@n2\npost-copy\nscript migrate web\n"},
	{"hosts that are nearly full, one move at a time",
		"hosts n1=1 n2=1 n3=1\nvms web@n1 db@n2\nper-source 1\nper-cluster 1\n" +
			"script migrate web\nscript migrate db\n"},
	{"a drain that is taken back",
		"hosts n1 n2 n3\nvms web@n1 db@n1\nper-source 1\nscript drain n1\nscript undrain n1\n"},
	{"a VM that is stopped while it moves",
		"hosts n1 n2 n3\nvms web@n1 db@n2\nscript migrate web\nscript stop web\n"},
	{"a VM that is stopped while it moves by post-copy",
		"hosts n1 n2\nvms web@n1,busy\npost-copy\nscript migrate web\nscript stop web\n"},
	{"a VM that is paused and resumed while it moves",
		"hosts n1 n2\nvms web@n1\nscript migrate web\nscript pause web\nscript resume web\n"},
	{"a VM that is stopped while its host is drained",
		"hosts n1 n2 n3\nvms web@n1\nscript drain n1\nscript stop web\n"},
}

func scene(t testing.TB, text string) *explore.Scene {
	t.Helper()
	s, err := explore.ParseScene(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

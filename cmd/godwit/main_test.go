package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"godwit": func() { os.Exit(run(context.Background(), os.Args[1:])) },
	})
}

// TestScripts runs the command as its users do.
func TestScripts(t *testing.T) {
	examples, err := os.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, f := range examples {
				if f.IsDir() {
					continue
				}
				data, err := os.ReadFile("../../examples/" + f.Name())
				if err != nil {
					return err
				}
				if err := os.WriteFile(e.WorkDir+"/"+f.Name(), data, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

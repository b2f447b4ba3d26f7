package config

import (
	"errors"
	"path/filepath"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/importer"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/inventory"
)

// beside returns where a file is that the scenario names: beside it.
func (r *reader) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.name), path)
}

// model reads what hypervisors cost, and how far that was off what was measured.
func (r *reader) model() (fake.Model, *predict.Errors) {
	choice := &r.spec.Model
	if choice.Spec != nil {
		return choice.Spec.Model(func(field, format string, args ...any) {
			r.wrong("model."+field, format, args...)
		}), nil
	}
	if m, known := ModelNamed(choice.Word); known {
		return m, nil
	}
	path := r.beside(choice.Word)
	m, e, err := ReadModelFile(path)
	if problems, are := errors.AsType[inventory.Problems](err); are {
		r.problems = append(r.problems, problems...)
	} else if err != nil {
		r.wrong("model", "unknown model %q; use qemu or ideal, or a file: %v", choice.Word, err)
	}
	r.files = append(r.files, importer.Files(path)...)
	return m, e
}

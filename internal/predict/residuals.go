package predict

import (
	"strings"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor/fake"
)

// Samples predicts every measurement that completed with a model, for package predict. It fails
// for a measurement that the fake refuses.
func Samples(all []Migration, model fake.Model) ([]Sample, error) {
	var samples []Sample
	for i := range all {
		m := &all[i]
		if !m.Completed {
			continue
		}
		p, err := m.Predict(model)
		if err != nil {
			return nil, err
		}
		samples = append(samples, Sample{Class: m.Class(), Experiment: m.experiment(),
			Predicted: Times{Total: p.Total, Downtime: p.Downtime},
			Measured:  Times{Total: m.Total, Downtime: m.Downtime}, NoDowntime: m.NoDowntime})
	}
	return samples, nil
}

// BuiltIn returns the measurements that are part of godwit. The lines of the second file begin
// anew.
func BuiltIn() ([]Migration, error) {
	all, err := Read("qemu-7.2.csv", strings.NewReader(MeasuredQEMU))
	if err != nil {
		return nil, err
	}
	more, err := Read("qemu-7.2-features.csv", strings.NewReader(measuredFeatures))
	return append(all, more...), err
}

// BuiltInErrors returns how far the built-in model is off the built-in measurements.
var BuiltInErrors = sync.OnceValues(func() (*Errors, error) {
	all, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	samples, err := Samples(all, Machine())
	return Learn(samples), err
})

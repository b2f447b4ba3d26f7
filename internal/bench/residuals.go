package bench

import (
	"strings"
	"sync"

	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/measurements"
	"github.com/godwit-vm/godwit/internal/predict"
)

// Samples predicts every measurement that completed with a model, for package predict. It fails
// for a measurement that the fake refuses.
func Samples(all []Migration, model fake.Model) ([]predict.Sample, error) {
	var samples []predict.Sample
	for i := range all {
		m := &all[i]
		if !m.Completed {
			continue
		}
		p, err := m.Predict(model)
		if err != nil {
			return nil, err
		}
		samples = append(samples, predict.Sample{Class: m.Class(), Experiment: m.Experiment(),
			Predicted: predict.Times{Total: p.Total, Downtime: p.Downtime},
			Measured:  predict.Times{Total: m.Total, Downtime: m.Downtime}, NoDowntime: m.NoDowntime})
	}
	return samples, nil
}

// BuiltIn returns the measurements that are part of godwit. The lines of the second file begin
// anew.
func BuiltIn() ([]Migration, error) {
	all, err := Read("qemu-7.2.csv", strings.NewReader(measurements.QEMU))
	if err != nil {
		return nil, err
	}
	more, err := Read("qemu-7.2-features.csv", strings.NewReader(measurements.Features))
	return append(all, more...), err
}

// BuiltInErrors returns how far the built-in model is off the built-in measurements.
var BuiltInErrors = sync.OnceValues(func() (*predict.Errors, error) {
	all, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	samples, err := Samples(all, Machine())
	return predict.Learn(samples), err
})

package convert

import (
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory"

	virtv1 "kubevirt.io/api/core/v1"
)

// Sound returns the cluster as a fleet without the VMIs that cannot be read, and what is wrong with each of these, so
// that one of them does not stand in the way of the others. An error is about something else.
func Sound(name string, c *Cluster, d inventory.Defaults) (*inventory.Fleet, map[hypervisor.VMID]string, error) {
	fleet, err := Fleet(name, c, d)
	if err == nil {
		return fleet, nil, nil
	}
	s := &sifter{cluster: *c, read: func(c *Cluster) error {
		_, err := Fleet(name, c, d)
		return err
	}, wrong: map[hypervisor.VMID]string{}}
	s.cluster.VMIs, s.cluster.Migrations = nil, nil
	if err := s.read(&s.cluster); err != nil {
		return nil, nil, err
	}
	s.sift(c.VMIs)
	sound := *c
	sound.VMIs = s.sound
	fleet, err = Fleet(name, &sound, d)
	return fleet, s.wrong, err
}

// A sifter separates the VMIs that can be read from the others.
type sifter struct {
	cluster Cluster // without VMIs
	read    func(*Cluster) error
	sound   []virtv1.VirtualMachineInstance
	wrong   map[hypervisor.VMID]string
}

// sift halves what cannot be read until single VMIs are left: a large cluster is not read once for each VMI.
func (s *sifter) sift(all []virtv1.VirtualMachineInstance) {
	if len(all) == 0 {
		return
	}
	some := s.cluster
	some.VMIs = all
	switch err := s.read(&some); {
	case err == nil:
		s.sound = append(s.sound, all...)
	case len(all) == 1:
		s.wrong[hypervisor.VMID(all[0].Namespace+"/"+all[0].Name)] = err.Error()
	default:
		s.sift(all[:len(all)/2])
		s.sift(all[len(all)/2:])
	}
}

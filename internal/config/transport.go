package config

import (
	"slices"

	"github.com/godwit-vm/godwit/agent"
	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/migration"
)

// Transport is how migrations cross the network.
type Transport struct {
	// Encryption is none (default), tls-x509 (certificates) or tls-psk (keys).
	Encryption string `yaml:"encryption,omitempty"`
	// Connections is how many one migration takes. Default: 8, as agents ask for.
	Connections *int `yaml:"connections,omitempty"`
}

// transport reads how migrations cross the network.
func (r *reader) transport(s *Scenario) {
	spec := &r.spec.Transport
	var known bool
	if s.Encryption, known = fake.EncryptionNamed(spec.Encryption); !known {
		r.wrong("transport.encryption", "unknown encryption %q; use none, tls-x509 or tls-psk",
			spec.Encryption)
	}
	r.abilities(s)
	if n := spec.Connections; n != nil {
		if *n < 1 || *n > agent.MaxConnections {
			r.wrong("transport.connections", "needs 1 to %d, has %d", agent.MaxConnections, *n)
			return
		}
		s.Agent.Connections = *n
	}
}

// abilities gives hosts certificates where the file says so, and where migrations must be encrypted and it says nothing of
// the abilities of a host.
func (r *reader) abilities(s *Scenario) {
	encrypts := s.requiresEncryption()
	if encrypts && r.spec.Transport.Encryption == "" {
		s.Encryption = fake.TLSX509
	}
	for i := range s.Fleet.Hosts {
		h := &s.Fleet.Hosts[i]
		switch {
		case h.Host.Abilities != 0:
		case h.Facts != nil && h.Facts.Abilities != 0:
			h.Host.Abilities = fake.Abilities | h.Facts.Abilities&hypervisor.CanEncrypt
		case encrypts:
			h.Host.Abilities = fake.Abilities | hypervisor.CanEncrypt
		}
	}
}

// requiresEncryption reports whether the cluster or a policy has migrations fail that are not encrypted.
func (s *Scenario) requiresEncryption() bool {
	return s.Controller.Cluster.Encryption == migration.EncryptionRequired ||
		slices.ContainsFunc(s.Controller.Policies, func(p migration.Policy) bool {
			return p.Encryption != nil && *p.Encryption == migration.EncryptionRequired
		})
}

package migration

import "slices"

// Encryption is whether the memory and the local disks of VMs are encrypted on their way between
// hosts. KubeVirt has only DisableTLS, which is EncryptionOff.
type Encryption string

// What an operator can want.
const (
	// EncryptionAuto encrypts where both hosts have certificates. It is the default.
	EncryptionAuto Encryption = ""
	// EncryptionRequired encrypts always: without certificates a migration fails, and the VM stays.
	EncryptionRequired Encryption = "Required"
	// EncryptionOff never encrypts.
	EncryptionOff Encryption = "Off"
)

// Encryptions lists the words for an operator's wish.
func Encryptions() []string {
	return []string{"Auto", string(EncryptionRequired), string(EncryptionOff)}
}

// ParseEncryption reads a word. It reports false for one that is none.
func ParseEncryption(word string) (Encryption, bool) {
	if word == "Auto" {
		return EncryptionAuto, true
	}
	return Encryption(word), slices.Contains(Encryptions(), word)
}

// String returns the word for the wish.
func (e Encryption) String() string {
	if e == EncryptionAuto {
		return "Auto"
	}
	return string(e)
}

// Traffic is how one migration's memory and disks are sent.
type Traffic string

// The kinds of traffic.
const (
	// TrafficAsConfigured: each host does what it is configured to. Neither has certificates, or the
	// controller did not know, as one of an earlier version.
	TrafficAsConfigured Traffic = ""
	TrafficEncrypted    Traffic = "encrypted"
	// In the clear, although one host or both have certificates: by configuration, or because one has
	// none.
	TrafficPlainByPolicy Traffic = "plain-by-policy"
	TrafficPlainSource   Traffic = "plain-source-without-certificates"
	TrafficPlainTarget   Traffic = "plain-target-without-certificates"
)

// Plain reports whether it was decided to send in the clear.
func (t Traffic) Plain() bool { return t != TrafficAsConfigured && t != TrafficEncrypted }

// Resolve decides how a migration is sent between hosts that have certificates, or have not.
func (e Encryption) Resolve(source, target bool) Traffic {
	switch {
	case e == EncryptionRequired:
		return TrafficEncrypted
	case !source && !target:
		return TrafficAsConfigured
	case e == EncryptionOff:
		return TrafficPlainByPolicy
	case !source:
		return TrafficPlainSource
	case !target:
		return TrafficPlainTarget
	}
	return TrafficEncrypted
}

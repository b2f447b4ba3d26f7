// Package domxml translates between libvirt's domain XML and godwit's vocabulary.
//
// [Build] makes the XML of a new domain. [Read] says what the XML of any domain
// means, also of a foreign one. [Change], [Resize], [AddDisk],
// [RemoveDisk] and [SetMark] edit it. [Of] lists what keeps a domain from
// moving.
//
// An edit touches only what it is about. All else comes out byte for byte as it
// went in: unknown elements, foreign metadata, comments, blanks and
// quotes. Therefore the XML is edited as a tree whose untouched parts remember
// where they came from, and not unmarshalled and marshalled again.
//
// godwit leaves a [Mark] in the metadata of its domains: the VM as it was asked
// for. libvirt spells defaults and aliases out, so that "q35" comes back as
// "pc-q35-7.2"; [Reconcile] puts both together.
//
// This package does no I/O.
//
// # Migration blockers
//
// This part says what keeps a libvirt domain from moving live: the devices
// and settings in its XML that libvirt or QEMU refuse to migrate, those that need
// something at the target, and those that move only between like hosts.
//
// It does no I/O. What only a running QEMU knows, libvirt asks it for when the
// migration begins.
//
// # Spec
//
// This part says which machines libvirt can be asked for, and where their disks
// are.
//
// # Tree
//
// This part edits XML in place: what is not changed comes out byte for byte as
// it went in.
package domxml

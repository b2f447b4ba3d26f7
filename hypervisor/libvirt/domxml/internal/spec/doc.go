// Package spec says which machines libvirt can be asked for, and where their disks
// are.
package spec

package backend

import (
	"path/filepath"
	"syscall"

	"github.com/godwit-vm/godwit/hypervisor"
)

// RoomFor refuses a file to which an image is to be copied that takes more than its file system has left.
// Where that is not known, the hypervisor tells.
func RoomFor(image string, takes hypervisor.Bytes, to string) error {
	var free syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(to), &free) != nil {
		return nil
	}
	if left := hypervisor.Bytes(free.Bavail) * hypervisor.Bytes(free.Bsize); left < takes {
		return Errorf(hypervisor.NoRoom, "%s takes %v, and %s has %v left", image, takes, filepath.Dir(to), left)
	}
	return nil
}

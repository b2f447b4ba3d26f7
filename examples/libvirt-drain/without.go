//go:build !linux || !libvirt_dlopen

// Command libvirt-drain moves what runs under one libvirtd to others. This build
// cannot: it says what is missing.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/godwit-vm/godwit/hypervisor/libvirt"
)

func main() {
	_, err := libvirt.New(context.Background(), libvirt.Config{Name: "host", Dir: "dir"})
	fmt.Fprintln(os.Stderr, "libvirt-drain:", err)
	os.Exit(1)
}

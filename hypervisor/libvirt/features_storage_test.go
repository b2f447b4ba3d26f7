//go:build linux && libvirt_dlopen

package libvirt_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/libvirt"
	"github.com/godwit-vm/godwit/internal/backendtest"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// diskDir is where local disks are, as both hosts see it; each has its own.
const diskDir = "/var/lib/libvirt/images/godwit"

// images lists the images of local disks on a host, without directories.
func (w *trial) images(n name) []string {
	w.T.Helper()
	entries, err := os.ReadDir(w.Outside(string(n), diskDir))
	if err != nil && !os.IsNotExist(err) {
		w.T.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	return files
}

// disk is the image of a local disk of a VM on a host, as this process sees it.
func (w *trial) disk(n name, id vmid, disk string) string {
	w.T.Helper()
	for _, f := range w.images(n) {
		if strings.Contains(f, domainOf(id)) && strings.Contains(f, disk) {
			return w.Outside(string(n), filepath.Join(diskDir, f))
		}
	}
	w.T.Fatalf("%s has no disk %s of %s, only %v", n, disk, id, w.images(n))
	return ""
}

// furnish makes a VM at rest whose local disks have known contents, which it returns
// by the disk's name. The last eighth of each stays empty.
func (w *trial) furnish(n name, vm hypervisor.VM) map[string][]byte {
	w.T.Helper()
	w.Do(n, vm.ID, hypervisor.Start{VM: vm}, hypervisor.Kill{})
	contents := map[string][]byte{}
	for i, d := range vm.Hardware.Disks {
		contents[d.Name] = append(backendtest.Noise(i, d.Size*7/8), make([]byte, d.Size/8)...)
		w.fill(w.disk(n, vm.ID, d.Name), d, contents[d.Name])
	}
	return contents
}

// fill writes contents into the image of a disk.
func (w *trial) fill(path string, d hypervisor.Disk, contents []byte) {
	w.T.Helper()
	raw := filepath.Join(w.dir, "raw")
	if err := os.WriteFile(raw, contents, 0o600); err != nil {
		w.T.Fatal(err)
	}
	defer os.Remove(raw)
	format := d.Format
	if format == "" {
		format = "raw"
	}
	backendtest.Image(w.T, "convert", "-n", "-f", "raw", "-O", format, raw, path)
}

// same wants the local disks of a VM at rest on a host to have these contents.
func (w *trial) same(n name, id vmid, contents map[string][]byte) {
	w.T.Helper()
	raw := filepath.Join(w.dir, "raw")
	defer os.Remove(raw)
	for disk, want := range contents {
		path := w.disk(n, id, disk)
		backendtest.Image(w.T, "convert", "-f", w.info(path).Format, "-O", "raw", path, raw)
		got, err := os.ReadFile(raw)
		if err != nil || !bytes.Equal(got, want) {
			w.T.Errorf("disk %s on %s is not what it was: %d bytes, want %d: %v", disk, n,
				len(got), len(want), err)
		}
	}
}

// An imageInfo is what qemu-img says of an image.
type imageInfo struct {
	Format  string
	Size    hypervisor.Bytes `json:"virtual-size"`
	Backing string           `json:"backing-filename"`
}

func (w *trial) info(path string) (info imageInfo) {
	w.T.Helper()
	text := backendtest.Image(w.T, "info", "--force-share", "--output=json", path)
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		w.T.Fatal(err)
	}
	return info
}

// twoDisks are a VM's local disks in both formats.
var twoDisks = []hypervisor.Disk{{Name: "root", Size: 4 * mib},
	{Name: "data", Format: "qcow2", Size: 8 * mib}}

func TestLocalDisksMoveWithTheirVM(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	contents := w.furnish(hosta, vm)
	w.start(hosta, vm)
	for _, f := range w.images(hostb) {
		t.Errorf("%s is at the target before it was asked for", f)
	}
	w.begin("there", vm.ID, transferOptions{})
	p := w.Until(hosta, "there", hypervisor.JobSucceeded)
	if p.Sent < 12*mib {
		t.Errorf("it says that it sent %v, and the disks have 12 MiB", p.Sent)
	}
	w.sound(hostb, vm.ID)
	if got := len(w.images(hosta)); got != 2 {
		t.Errorf("before Release the source has %d images", got)
	}
	w.Do(hosta, vm.ID, moved("there", vm.ID, hostb))
	if left := w.images(hosta); len(left) > 0 {
		t.Errorf("after Release the source still has %v", left)
	}
	if d := w.Domain(hostb, vm.ID); !d.VM.Equal(vm) {
		t.Errorf("it arrived as %+v %+v", d.VM, d.VM.Hardware)
	}
	w.Do(hostb, vm.ID, hypervisor.Kill{})
	w.same(hostb, vm.ID, contents)
	for _, d := range twoDisks {
		if i := w.info(w.disk(hostb, vm.ID, d.Name)); i.Size != d.Size ||
			(i.Format == "qcow2") != (d.Format == "qcow2") || i.Backing != "" {
			t.Errorf("disk %s has become %+v", d.Name, i)
		}
	}
	w.Do(hostb, vm.ID, hypervisor.Forget{})
	if got := len(w.images(hostb)); got != 2 {
		t.Errorf("Forget leaves %d images, want both", got)
	}
}

// While disks are copied the job says how that goes: it would be given up otherwise, as one
// that does not move.
func TestACopyOfDisksIsProgress(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), hypervisor.Disk{Name: "data", Size: 32 * mib})
	w.furnish(hosta, vm)
	w.start(hosta, vm)
	w.begin("job", vm.ID, transferOptions{Bandwidth: slow})
	var last hypervisor.Bytes
	for range 2 {
		w.Eventually("disks are copied", func() bool {
			return w.Progress(hosta, "job").Sent > last
		})
		p := w.Progress(hosta, "job")
		if p.Status != hypervisor.JobActive || p.Iteration != 0 || p.Disks != 32*mib ||
			p.Sent > 32*mib || p.Remaining < vm.Memory || p.Remaining > vm.Memory+p.Disks {
			t.Errorf("while its disks are copied it is %+v", p)
		}
		if last = p.Sent; last == 32*mib {
			break // all of it, within a look
		}
	}
	w.Adjust("job", hypervisor.Cancel{})
	w.Until(hosta, "job", hypervisor.JobCancelled)
	w.stays("job", vm.ID)
}

// A local disk that was put on top of another image arrives whole: there is
// nothing below it at the target.
func TestAnOverlayArrivesFlat(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm),
		hypervisor.Disk{Name: "data", Format: "qcow2", Size: 4 * mib})
	contents := w.furnish(hosta, vm)
	top := w.disk(hosta, vm.ID, "data")
	base := filepath.Join(w.Outside(string(hosta), "/var/lib/libvirt"), "base.qcow2")
	if err := os.Rename(top, base); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(base) })
	backendtest.Image(t, "create", "-u", "-f", "qcow2", "-F", "qcow2", "-b", "/var/lib/libvirt/base.qcow2",
		top, "4M")
	w.start(hosta, vm)
	w.begin("job", vm.ID, transferOptions{})
	w.arrives("job", vm.ID)
	w.Do(hostb, vm.ID, hypervisor.Kill{})
	if i := w.info(w.disk(hostb, vm.ID, "data")); i.Backing != "" {
		t.Errorf("at the target it is on top of %s, which is not there", i.Backing)
	}
	w.same(hostb, vm.ID, contents)
}

// What a failed migration has made at the target is gone after Discard, and does no
// harm to the next.
func TestAFailedCopyLeavesNoImages(t *testing.T) {
	testutil.Sample(t, 5)
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	contents := w.furnish(hosta, vm)
	w.start(hosta, vm)
	w.begin("cancelled", vm.ID, transferOptions{Bandwidth: slow})
	w.Eventually("libvirt has made the images", func() bool { return len(w.images(hostb)) == 2 })
	w.Adjust("cancelled", hypervisor.Cancel{})
	w.Until(hosta, "cancelled", hypervisor.JobCancelled)
	w.stays("cancelled", vm.ID)
	if left := w.images(hostb); len(left) > 0 {
		t.Errorf("after Discard the target still has %v", left)
	}
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.same(hosta, vm.ID, contents)
	vm = w.grown(vm, 16*mib)
	w.start(hosta, vm)
	w.begin("again", vm.ID, transferOptions{})
	w.arrives("again", vm.ID)
}

// What a VM that was forgotten has left is not written over, nor removed.
func TestImagesThatAreThereAreKept(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), twoDisks...)
	contents := w.furnish(hostb, vm)
	w.Do(hostb, vm.ID, hypervisor.Forget{})
	_, err := w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	wantReasons(t, err, hypervisor.Invalid, "disk root", "disk data")
	w.Do(hostb, vm.ID, hypervisor.Discard{Job: "job"})
	w.same(hostb, vm.ID, contents)
}

// grown resizes the second disk of a VM at rest at hosta.
func (w *trial) grown(vm hypervisor.VM, size hypervisor.Bytes) hypervisor.VM {
	w.T.Helper()
	disks := slices.Clone(vm.Hardware.Disks)
	disks[1].Size = size
	vm = backendtest.WithDisks(vm, disks...)
	w.Do(hosta, vm.ID, hypervisor.Resize{VM: vm})
	return vm
}

// A target without room for a local disk fails the job, with a reason. The VM runs on.
func TestAFullTargetKeepsTheVMAtItsSource(t *testing.T) {
	w := newTrial(t, nil)
	vm := backendtest.WithDisks(w.vm(traveller, calm), hypervisor.Disk{Name: "data", Size: 8 * mib})
	contents := w.furnish(hosta, vm)
	w.start(hosta, vm)
	small := w.Outside(string(hostb), diskDir)
	if err := os.MkdirAll(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := w.Run(string(hostb), "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs",
		diskDir); err != nil {
		t.Skipf("no small file system can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { _, _ = w.Run(string(hostb), "umount", "-l", diskDir) })
	err := w.send("job", vm.ID, transferOptions{})
	if err != nil {
		t.Logf("it is refused: %v", err)
		backendtest.Refused(t, err, hypervisor.Conflict)
	} else {
		p := w.ended("job")
		if p.Status != hypervisor.JobFailed || p.Error == "" {
			t.Errorf("it is %v: %q", p.Status, p.Error)
		}
		t.Log(p.Error)
	}
	w.stays("job", vm.ID)
	w.Do(hosta, vm.ID, hypervisor.Kill{})
	w.same(hosta, vm.ID, contents)
}

// Images of shared disks are where they are, and are not copied.
func TestSharedDisksAreNotCopied(t *testing.T) {
	w := newTrial(t, nil)
	shared := filepath.Join(w.SharedDir(), "shared.raw")
	d := hypervisor.Disk{Name: "data", Path: shared, Size: 4 * mib, ReadOnly: true}
	backendtest.Image(t, "create", "-f", "raw", shared, "4M")
	w.fill(shared, d, backendtest.Noise(7, d.Size))
	vm := backendtest.WithDisks(w.vm(traveller, calm), d, hypervisor.Disk{Name: "own", Size: mib})
	w.start(hosta, vm)
	w.begin("job", vm.ID, transferOptions{})
	if p := w.arrives("job", vm.ID); p.Sent > 12*mib {
		t.Errorf("it sent %v, more than the memory and its own disk", p.Sent)
	}
	if got := w.images(hostb); len(got) != 1 {
		t.Errorf("the target has the images %v, want only its own", got)
	}
	w.ends(hostb, vm.ID)
	if got, err := os.ReadFile(shared); err != nil || !bytes.Equal(got, backendtest.Noise(7, d.Size)) {
		t.Errorf("the shared disk is not what it was: %v", err)
	}
}

// What is missing at the target is said before anything moves, all of it.
func TestMissingFilesAreSaidBeforehand(t *testing.T) {
	w := newTrial(t, func(c *libvirt.Config) {})
	vm := backendtest.WithDisks(w.vm(traveller, calm),
		hypervisor.Disk{Name: "one", Path: "/var/lib/libvirt/only-here.raw", Size: mib},
		hypervisor.Disk{Name: "two", Path: "/nowhere/at/all.qcow2", Format: "qcow2", Size: mib})
	vm.Hardware.Firmware = "/var/lib/libvirt/no-firmware"
	vm.Hardware.Machine = "pc-q35-99.0"
	vm.Hardware.Hugepages = hypervisor.GiB
	vm.Memory = hypervisor.GiB
	_, err := w.Host(hostb).Receive(t.Context(), hypervisor.Incoming{Job: "job", VM: vm})
	wantReasons(t, err, hypervisor.Invalid, "machine", "disk one", "disk two", "firmware",
		"hugepages of 1GiB")
	if d := w.Domain(hostb, vm.ID); d.State != hypervisor.Absent {
		t.Errorf("the target is %v", d.State)
	}
}

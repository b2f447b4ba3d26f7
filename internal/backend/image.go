package backend

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/godwit-vm/godwit/hypervisor"
)

// signatures are how the files of images begin, by their formats.
// Source: QEMU 7.2 block/qcow2.c, qed.h, vmdk.c, vhdx.h, vpc.c, vdi.c.
var signatures = []struct {
	format string
	at     int
	bytes  string
}{
	{"qcow2", 0, "QFI\xfb"}, {"qed", 0, "QED\x00"}, {"vmdk", 0, "KDMV"}, {"vmdk", 0, "COWD"},
	{"vhdx", 0, "vhdxfile"}, {"vpc", 0, "conectix"}, {"vdi", 0x40, "\x7f\x10\xda\xbe"},
}

// headerSize is how much of a file the signatures need.
const headerSize = 0x44

// signature returns the format whose header the beginning of a file is; "" is none.
func signature(start []byte) string {
	for _, s := range signatures {
		if len(start) >= s.at && bytes.HasPrefix(start[s.at:], []byte(s.bytes)) {
			return s.format
		}
	}
	return ""
}

// Undeclared refuses a shared disk whose format is not declared and whose file at a path begins like
// an image of another format than raw. Which of the two it is, only its owner can know: taken for
// raw, a guest would see the header of the image and write over it; taken for what the header says,
// the guest of a raw image could write a header that names any file of the host.
//
// It refuses a directory and a pipe as well: no format makes them an image. A file that is not there
// is not refused. The error is *[Refused], or that the file cannot be read.
func Undeclared(d hypervisor.Disk, path string) error {
	if d.Local() || d.Format != "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe has no writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if s, err := f.Stat(); err == nil && s.Mode()&(fs.ModeDir|fs.ModeNamedPipe) != 0 {
		what := "a pipe"
		if s.IsDir() {
			what = "a directory"
		}
		var c Checker
		c.Need(false, "disk "+Quote(d.Name), "an image file or a block device", Quote(path)+" is "+what)
		return c.Refused("")
	}
	start := make([]byte, headerSize)
	n, err := f.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	format := signature(start[:n])
	if format == "" {
		return nil
	}
	declare := "format=" + format + ", or format=raw if its guest wrote that header"
	if format != "qcow2" {
		declare = "format=raw if its guest wrote that header, or convert it with qemu-img convert -O qcow2"
	}
	var c Checker
	c.Need(false, "disk "+Quote(d.Name)+": format", "declared: "+declare,
		fmt.Sprintf("not, and %s looks like %s", Quote(path), format))
	return c.Refused("")
}

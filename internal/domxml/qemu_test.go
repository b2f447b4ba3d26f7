package domxml_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/internal/domxml"
)

// A device is one that libvirt starts so, by its XML, and the options that QEMU gets for it.
type device struct{ xml, options string }

const xhci = "-device qemu-xhci "

// startable are all that can be started without hardware of the host.
var startable = []device{
	{"<sound model='usb'/>", xhci + "-audiodev none,id=a -device usb-audio,audiodev=a"},
	{"<sound model='ich9'/>", "-device ich9-intel-hda -audiodev none,id=a -device hda-duplex,audiodev=a"},
	{"<sound model='ac97'/>", "-audiodev none,id=a -device AC97,audiodev=a"},
	{"<sound model='es1370'/>", "-audiodev none,id=a -device ES1370,audiodev=a"},
	{"<sound model='sb16'/>", "-audiodev none,id=a -device sb16,audiodev=a"},
	{"<sound model='virtio'/>", "-audiodev none,id=a -device virtio-sound-pci,audiodev=a"},
	{"<interface type='ethernet'><model type='usb-net'/></interface>",
		xhci + "-netdev hubport,hubid=0,id=n -device usb-net,netdev=n"},
	{"<interface type='ethernet'><model type='e1000'/></interface>",
		"-netdev hubport,hubid=0,id=n -device e1000,netdev=n"},
	{"<interface type='ethernet'><model type='e1000e'/></interface>",
		"-netdev hubport,hubid=0,id=n -device e1000e,netdev=n"},
	{"<interface type='ethernet'><model type='rtl8139'/></interface>",
		"-netdev hubport,hubid=0,id=n -device rtl8139,netdev=n"},
	{"<interface type='ethernet'><model type='pcnet'/></interface>",
		"-netdev hubport,hubid=0,id=n -device pcnet,netdev=n"},
	{"<interface type='ethernet'><model type='ne2k_pci'/></interface>",
		"-netdev hubport,hubid=0,id=n -device ne2k_pci,netdev=n"},
	{"<interface type='ethernet'><model type='vmxnet3'/></interface>",
		"-netdev hubport,hubid=0,id=n -device vmxnet3,netdev=n"},
	{"<interface type='ethernet'><model type='virtio'/></interface>",
		"-netdev hubport,hubid=0,id=n -device virtio-net-pci,netdev=n"},
	{"<serial type='null'><target type='usb-serial'/></serial>",
		xhci + "-chardev null,id=c -device usb-serial,chardev=c"},
	{"<serial type='null'><target type='isa-serial'/></serial>",
		"-chardev null,id=c -device isa-serial,chardev=c"},
	{"<serial type='null'><target type='pci-serial'/></serial>",
		"-chardev null,id=c -device pci-serial,chardev=c"},
	{"<crypto model='virtio' type='qemu'/>",
		"-object cryptodev-backend-builtin,id=c -device virtio-crypto-pci,cryptodev=c"},
	{"<iommu model='amd'/>", "-device amd-iommu"},
	{"<iommu model='intel'/>", "-device intel-iommu"},
	{"<iommu model='virtio'/>", "-device virtio-iommu-pci"},
	{"<input type='tablet' bus='usb'/>", xhci + "-device usb-tablet"},
	{"<input type='mouse' bus='usb'/>", xhci + "-device usb-mouse"},
	{"<input type='keyboard' bus='usb'/>", xhci + "-device usb-kbd"},
	{"<input type='tablet' bus='virtio'/>", "-device virtio-tablet-pci"},
	{"<hub type='usb'/>", xhci + "-device usb-hub"},
	{"<watchdog model='i6300esb'/>", "-device i6300esb"},
	{"<watchdog model='ib700'/>", "-device ib700"},
	{"<panic model='isa'/>", "-device pvpanic"},
	{"<rng model='virtio'/>", "-object rng-builtin,id=r -device virtio-rng-pci,rng=r"},
	{"<memballoon model='virtio'/>", "-device virtio-balloon-pci"},
	{"<video><model type='vga'/></video>", "-device VGA"},
	{"<video><model type='cirrus'/></video>", "-device cirrus-vga"},
	{"<video><model type='qxl'/></video>", "-device qxl-vga"},
	{"<video><model type='bochs'/></video>", "-device bochs-display"},
	{"<video><model type='virtio'/></video>", "-device virtio-vga"},
	{"<controller type='usb' model='nec-xhci'/>", "-device nec-usb-xhci"},
	{"<controller type='usb' model='ich9-ehci1'/>", "-device ich9-usb-ehci1"},
	{"<controller type='usb' model='piix3-uhci'/>", "-device piix3-usb-uhci"},
	{"<controller type='usb' model='pci-ohci'/>", "-device pci-ohci"},
	{"<controller type='scsi' model='virtio-scsi'/>", "-device virtio-scsi-pci"},
	{"<controller type='scsi' model='lsilogic'/>", "-device lsi53c895a"},
	{"<controller type='scsi' model='lsisas1068'/>", "-device mptsas1068"},
	{"<controller type='scsi' model='lsisas1078'/>", "-device megasas"},
	{"<controller type='scsi' model='vmpvscsi'/>", "-device pvscsi"},
	{"<controller type='scsi' model='am53c974'/>", "-device am53c974"},
	{"<controller type='scsi' model='dc390'/>", "-device dc390"},
	{"<controller type='virtio-serial'/>", "-device virtio-serial-pci"},
	{"<smartcard mode='passthrough' type='spicevmc'/>", xhci + "-device usb-ccid"},
	{"<redirdev bus='usb' type='tcp'/>", xhci + "-chardev null,id=c -device usb-redir,chardev=c"},
	{"<disk type='file'><source file='/i'/><target dev='a' bus='nvme'/></disk>",
		"-device nvme,serial=1"},
	{"<disk type='file'><source file='/i'/><target dev='sda' bus='usb'/></disk>",
		xhci + "-blockdev null-co,node-name=b,read-zeroes=on -device usb-storage,drive=b"},
}

// QEMU itself says which devices it does not migrate: what it refuses is forbidden, and nothing
// else is.
func TestQEMUAgreesOnEveryDevice(t *testing.T) {
	for _, d := range startable {
		agree(t, d.xml, strings.Fields(d.options))
	}
}

// The same of images, those that a guest only reads, and those that others are based on.
func TestQEMUAgreesOnEveryFormatOfImages(t *testing.T) {
	folder := t.TempDir()
	for _, format := range []string{"raw", "qcow2", "vmdk", "vdi", "vpc", "vhdx", "qcow", "parallels",
		"qed"} {
		image := filepath.Join(folder, format)
		if out, err := exec.Command("qemu-img", "create", "-f", format, image, "64M").
			CombinedOutput(); err != nil {
			t.Logf("%s: not made here: %s", format, out)
			continue
		}
		disk := "<disk type='file'><driver name='qemu' type='%s'/><source file='%s'/>%s" +
			"<target dev='vda' bus='virtio'/></disk>"
		drive := "file=" + image + ",if=virtio,format=" + format
		agree(t, fmt.Sprintf(disk, format, image, ""), []string{"-drive", drive})
		agree(t, fmt.Sprintf(disk, format, image, "<readonly/>"),
			[]string{"-drive", drive + ",readonly=on"})
		over := image + ".over"
		if out, err := exec.Command("qemu-img", "create", "-f", "qcow2", "-b", image, "-F", format,
			over).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		agree(t, fmt.Sprintf(disk, "qcow2", over, "<backingStore type='file'><format type='"+format+
			"'/><source file='"+image+"'/></backingStore>"),
			[]string{"-drive", "file=" + over + ",if=virtio,format=qcow2"})
	}
}

// agree holds a device against QEMU's own list of what keeps it from migrating.
func agree(t *testing.T, xml string, options []string) {
	t.Helper()
	reasons, refused := reasonsOf(t, options)
	if refused != "" {
		t.Logf("%s: not started here: %s", xml, refused)
		return
	}
	all, err := domxml.Of(domain("<devices>"+xml+"</devices>"), domxml.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if forbidden := domxml.Refuse(all); (forbidden != nil) != (len(reasons) > 0) {
		t.Errorf("%s\nQEMU is kept by %q, the rules by %v", xml, reasons, forbidden)
	}
}

// reasonsOf starts QEMU with options and asks what keeps it from migrating, or returns why it
// does not start.
func reasonsOf(t *testing.T, options []string) (reasons []string, refused string) {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	path := filepath.Join(t.TempDir(), "qmp")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(qemu, append([]string{"-nodefaults", "-display", "none", "-machine",
		"q35,accel=tcg", "-m", "64", "-S", "-qmp", "unix:" + path}, options...)...)
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Wait(); listener.Close() }()
	defer func() { _ = c.Process.Kill(); <-ended }()
	conn, err := listener.Accept()
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, strings.TrimSpace(string(text))
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewScanner(conn)
	answers.Scan() // its greeting
	fmt.Fprintln(conn, `{"execute": "qmp_capabilities"} {"execute": "query-migrate", "id": 1}`)
	for answers.Scan() {
		var a struct {
			ID     int
			Return struct {
				Reasons []string `json:"blocked-reasons"`
			}
		}
		if err := json.Unmarshal(answers.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if a.ID == 1 {
			return a.Return.Reasons, ""
		}
	}
	text, _ := os.ReadFile(log.Name())
	return nil, strings.TrimSpace(string(text))
}

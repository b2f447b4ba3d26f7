package domxml

// A rule looks at every element of one kind.
type rule struct {
	check string // what is looked at
	path  string // below /domain
	judge func(subject) (Blocker, bool)
}

// rules are all reasons why a domain does not move, or not everywhere.
var rules = []rule{
	{"launch security", "launchSecurity", launchSecurity},
	{"CPU feature invtsc", "cpu/feature", invariantTSC},
	{"CPU", "cpu", hostCPU},
	{"Hyper-V features", "features/hyperv", hyperv},
	{"locked memory", "memoryBacking/locked", lockedMemory},
	{"host device", "devices/hostdev", hostDevice},
	{"network card", "devices/interface", networkCard},
	{"file system", "devices/filesystem", fileSystem},
	{"shared memory device", "devices/shmem", sharedMemory},
	{"memory module", "devices/memory", memoryModule},
	{"TPM", "devices/tpm/backend", tpm},
	{"video card", "devices/video/model/acceleration", video},
	{"input device", "devices/input", input},
	{"serial port", "devices/serial", hostPort},
	{"parallel port", "devices/parallel", hostPort},
	{"serial port", "devices/serial", usbSerial},
	{"network card", "devices/interface", usbCard},
	{"sound card", "devices/sound", sound},
	{"crypto device", "devices/crypto", cryptoDevice},
	{"IOMMU", "devices/iommu", iommu},
	{"disk", "devices/disk", emulatedNVMe},
	{"image of a disk", "devices/disk", imageFormat},
	{"disk", "devices/disk", transient},
	{"disk", "devices/disk", cache},
	{"image of a disk", "devices/disk", localDisk},
	{"secret of a disk", "devices/disk/encryption/secret", secret},
	{"secret of a disk", "devices/disk/source/encryption/secret", secret},
	{"secret of a disk", "devices/disk/auth/secret", secret},
	{"secret of a disk", "devices/disk/source/auth/secret", secret},
}

// launchSecurity: memory that the host cannot read, it cannot send either.
// Source: QEMU target/i386/sev.c ("SEV: Migration is not implemented"), hw/s390x/
// s390-virtio-ccw.c ("protected VMs are currently not migratable").
func launchSecurity(s subject) (Blocker, bool) {
	switch kind := s.attr("type"); kind {
	case "sev", "sev-snp", "tdx":
		return forbid("none: the hypervisor cannot move encrypted memory", kind)
	case "s390-pv":
		return forbid("none: the hypervisor cannot move protected memory", kind)
	}
	return pass()
}

// hyperv: passed through, the guest sees all that the host has.
// Source: libvirt formatdomain, hypervisor features (hyperv mode).
func hyperv(s subject) (Blocker, bool) {
	if s.attr("mode") == "passthrough" {
		return advise("hosts with the same kernel and QEMU", "passed through")
	}
	return pass()
}

// lockedMemory: the target locks as much, or does not start.
// Source: libvirt formatdomain, memory backing (locked).
func lockedMemory(subject) (Blocker, bool) {
	return advise("as much memory at the target that can be locked", "locked")
}

// hostDevice: libvirt moves none but USB devices, which the guest then finds
// unplugged, and cards that the guest can do without for a while.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowedHostdev).
func hostDevice(s subject) (Blocker, bool) {
	kind := s.attr("type")
	switch {
	case s.attr("mode") == "capabilities":
		return forbid("no device of a container", "passed through")
	case kind == "usb":
		return demand("the same device at the target; the guest sees it unplugged",
			"a USB device of this host")
	case kind == "pci" && s.in("type", "teaming") == "transient":
		return demand("such a card at the target", "a PCI device that is unplugged for the move")
	}
	return forbid("emulated, or a PCI device with <teaming type='transient'>",
		"a device of this host of the type "+quoted(kind))
}

// networkCard: a card that is passed through is a host device.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowedHostdev for parentnet,
// qemuMigrationSrcIsAllowed for vDPA).
func networkCard(s subject) (Blocker, bool) {
	mac := s.in("address", "mac")
	switch kind := s.attr("type"); {
	case kind == "hostdev" && s.in("type", "teaming") == "transient":
		return demand("such a card at the target", "card "+mac+", unplugged for the move")
	case kind == "hostdev", kind == "vdpa":
		return forbid("virtio with a bridge, a network or a tap", "card "+mac+" of the type "+kind)
	case kind == "user":
		return advise("none: its connections end", "card "+mac+" of the type user")
	}
	return pass()
}

// fileSystem: what the server of a virtiofs has open, only it knows; a 9p that is
// mounted blocks.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowed), QEMU hw/9pfs/9p.c
// ("Migration is disabled when VirtFS export path").
func fileSystem(s subject) (Blocker, bool) {
	target := quoted(s.in("dir", "target"))
	switch {
	case s.in("type", "driver") != "virtiofs":
		return forbid("a disk or a network file system, or not to be mounted",
			"the folder "+target+" of this host through 9p")
	case s.in("socket", "source") != "":
		return demand("a virtiofsd at the target that can take the state over",
			"the folder "+target+" through a virtiofsd that is not libvirt's")
	}
	return forbid("a disk or a network file system", "the folder "+target+" through virtiofs")
}

// sharedMemory: only the master's memory moves with it.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowed).
func sharedMemory(s subject) (Blocker, bool) {
	if s.attr("role") == "master" {
		return pass()
	}
	return forbid("role='master'", quoted(s.attr("name"))+" with the role "+quoted(s.attr("role")))
}

// memoryModule: what is in persistent memory moves with memory, into a file that has
// to exist.
// Source: libvirt formatdomain, memory devices (nvdimm, virtio-pmem).
func memoryModule(s subject) (Blocker, bool) {
	switch model := s.attr("model"); model {
	case "nvdimm", "virtio-pmem":
		return demand("such a file or device at the target", model+" "+
			quoted(textIn(child(s.Element, "source", "path"))))
	case "sgx-epc":
		return forbid("none: enclaves cannot move", model)
	}
	return pass()
}

// tpm: a TPM of the host has keys that never leave it. That of swtpm moves with the
// VM, if swtpm can do that at both ends.
// Source: QEMU backends/tpm/tpm_passthrough.c, tpm_emulator.c (migration blockers).
func tpm(s subject) (Blocker, bool) {
	switch kind := s.attr("type"); kind {
	case "passthrough":
		return forbid("an emulated TPM", "the TPM of this host")
	case "emulator", "external":
		return demand("an swtpm at the target that is no older, and the same secret if it is "+
			"encrypted", "of the type "+kind)
	}
	return pass()
}

// video: what is in the host's graphics card stays there.
// Source: QEMU hw/display/virtio-gpu-base.c ("virgl is not yet migratable").
func video(s subject) (Blocker, bool) {
	if s.attr("accel3d") == "yes" {
		return forbid("accel3d='no'", "accelerated by this host's card")
	}
	return pass()
}

// input: a device of the host that is passed through has no state that QEMU knows.
// Source: QEMU hw/input/virtio-input-host.c (unmigratable).
func input(s subject) (Blocker, bool) {
	if s.attr("type") == "passthrough" {
		return forbid("emulated", "the device "+quoted(s.in("evdev", "source"))+" of this host")
	}
	return pass()
}

// hostPort: what is connected to a port of the host stays there.
// Source: libvirt formatdomain, host device proxy (type='dev').
func hostPort(s subject) (Blocker, bool) {
	if s.attr("type") != "dev" {
		return pass()
	}
	return demand("the same device at the target", "the port "+quoted(s.in("path", "source"))+
		" of this host")
}

// usbSerial: Source: QEMU hw/usb/dev-serial.c (vmstate_usb_serial, unmigratable).
func usbSerial(s subject) (Blocker, bool) {
	if s.in("type", "target") != "usb-serial" {
		return pass()
	}
	return forbid("another type of port", "on the USB bus")
}

// usbCard: Source: QEMU hw/usb/dev-network.c (vmstate_usb_net, unmigratable).
func usbCard(s subject) (Blocker, bool) {
	if s.in("type", "model") != "usb-net" {
		return pass()
	}
	return forbid("another model, like virtio", "card "+s.in("address", "mac")+" on the USB bus")
}

// sound: Source: QEMU hw/usb/dev-audio.c (vmstate_usb_audio, unmigratable), hw/audio/
// virtio-snd.c of QEMU 8.2 and newer (vmstate_virtio_snd, unmigratable).
func sound(s subject) (Blocker, bool) {
	switch model := s.attr("model"); model {
	case "usb", "virtio":
		return forbid("another model, like ich9", "of the model "+model)
	}
	return pass()
}

// cryptoDevice: Source: QEMU hw/virtio/virtio-crypto.c (vmstate_virtio_crypto, unmigratable).
func cryptoDevice(s subject) (Blocker, bool) {
	if s.attr("model") != "virtio" {
		return pass()
	}
	return forbid("none: QEMU sends no state of it", "of the model virtio")
}

// iommu: Source: QEMU hw/i386/amd_iommu.c (vmstate_amdvi_sysbus, unmigratable).
func iommu(s subject) (Blocker, bool) {
	if s.attr("model") != "amd" {
		return pass()
	}
	return forbid("another model, like virtio", "of the model amd")
}

// unmovable are the formats of images that QEMU does not hand over, whether the guest writes to
// them or not: it keeps parts of them in memory.
var unmovable = map[string]bool{"vmdk": true, "vdi": true, "vpc": true, "vhdx": true, "qcow": true,
	"parallels": true}

// imageFormat looks at the image of a disk, and at those that it is based on.
// Source: QEMU block/{vmdk,vdi,vpc,vhdx,qcow,parallels,vvfat}.c (migrate_add_blocker).
func imageFormat(s subject) (Blocker, bool) {
	if child(s.Element, "source") == nil { // an empty drive
		return pass()
	}
	if s.attr("type") == "dir" && !s.has("readonly") {
		return forbid("to be read only", "disk "+s.name()+", a folder that the guest writes to")
	}
	format := s.in("type", "driver")
	below := child(s.Element, "backingStore")
	for range 1000 { // what a file says of itself may not end
		if unmovable[format] {
			return forbid("a raw or a qcow2 image", "disk "+s.name()+" with an image of the format "+
				format)
		}
		if below == nil {
			return pass()
		}
		format = Attr(child(below, "format"), "type")
		below = child(below, "backingStore")
	}
	return pass()
}

// emulatedNVMe: a controller of the host is unsafe to move; an emulated one has no
// state that QEMU could send.
// Source: libvirt qemu_migration.c (qemuMigrationSrcCheckStorageSourceSafety), QEMU
// hw/nvme/ctrl.c (nvme_vmstate, unmigratable).
func emulatedNVMe(s subject) (Blocker, bool) {
	switch {
	case s.attr("type") == "nvme":
		return forbid("a file, a block device or a network disk",
			"disk "+s.name()+" on an NVMe controller of this host")
	case s.in("bus", "target") == "nvme":
		return forbid("on another bus, like virtio", "disk "+s.name()+" on an emulated NVMe")
	}
	return pass()
}

// transient: what was written since the start is in a file that is not kept.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsAllowed).
func transient(s subject) (Blocker, bool) {
	if !s.has("transient") {
		return pass()
	}
	return forbid("to keep what is written", "transient disk "+s.name())
}

// cache: what the source's page cache holds, the target does not see.
// Source: libvirt qemu_migration.c (qemuMigrationSrcIsSafeDisk).
func cache(s subject) (Blocker, bool) {
	mode := s.in("cache", "driver")
	safe := mode == "" || mode == "default" || mode == "none" || mode == "directsync"
	if safe || s.local[s.image()] || s.attr("type") == "network" || s.has("readonly") {
		return pass()
	}
	return advise("cache='none' or 'directsync' where a shared file system does not drop "+
		"its cache", "disk "+s.name()+" with cache "+quoted(mode))
}

// secret: libvirt of the target looks the secret up among its own.
// Source: libvirt formatdomain, storage encryption and authentication.
func secret(s subject) (Blocker, bool) {
	if uuid := s.attr("uuid"); uuid != "" {
		return demand("the same secret at the target", "the secret with the UUID "+uuid)
	}
	return demand("the same secret at the target", "the secret for "+quoted(s.attr("usage")))
}

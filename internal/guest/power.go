package guest

// The power management of QEMU's two machines: "pc" has a PIIX4 and "q35" an
// ICH9. Firmware chooses where its ports are; ours and SeaBIOS choose the same.
// Sources: Intel 82371AB (PIIX4) 7.2, Intel ICH9 13.8.3; ACPI 4.8.3 for the
// registers behind powerPorts.
const (
	powerPorts   = 0x600
	powerEnable  = powerPorts + 2
	powerControl = powerPorts + 4
	pressed      = 0x100  // in the status and in the enable register
	powerOff     = 0x2000 // sleep now; the type 0 is soft-off in QEMU

	configAddress = 0xcf8
	configData    = 0xfc // the low byte of the data port's number

	piix4       = 0x80000b00 // device 1, function 3 on bus 0
	piix4ID     = 0x71138086
	piix4Enable = 0x80
	ich9        = 0x8000f800 // device 31, function 0
	ich9ID      = 0x29188086
	ich9Enable  = 0x44
	powerBase   = 0x40 // the same register in both
)

// findPowerButton makes the power button work: esi becomes the port that tells
// whether it was pressed, or 0 if there is none or it is to be ignored.
func findPowerButton(a *assembler) {
	a.xor(esi, esi)
	a.test(byteAt(absolute(paramFlags)), imm(flagStubborn))
	a.jnz("no button")

	a.mov(eax, imm(piix4))
	a.call("configure")
	a.inPort(eax)
	a.mov(ebx, imm(piix4+piix4Enable))
	a.mov(ecx, imm(1))
	a.cmp(eax, imm(piix4ID))
	a.jz("button")
	a.mov(eax, imm(ich9))
	a.call("configure")
	a.inPort(eax)
	a.mov(ebx, imm(ich9+ich9Enable))
	a.mov(ecx, imm(0x80))
	a.cmp(eax, imm(ich9ID))
	a.jnz("no button")

	a.label("button") // ebx, ecx: the register that enables the ports, and how
	a.mov(eax, ebx)
	a.call("configure")
	a.mov(eax, ecx)
	a.outPort(eax)
	a.mov(eax, ebx)
	a.and(al, imm(0))
	a.or(al, imm(powerBase))
	a.call("configure")
	a.mov(eax, imm(powerPorts|1)) // the lowest bit says: ports, not memory
	a.outPort(eax)
	a.mov(esi, imm(powerPorts))
	a.mov(edx, imm(powerEnable))
	a.mov(eax, imm(pressed)) // without it QEMU does not even note the button
	a.outPort(ax)
	a.label("no button")
}

// powerRoutines are called from elsewhere.
func powerRoutines(a *assembler) {
	a.label("power off")
	a.mov(al, imm(Off))
	a.call("say")
	a.mov(edx, imm(powerControl))
	a.mov(eax, imm(powerOff))
	a.outPort(ax)
	a.label("powered off") // QEMU stops the processor a moment later
	a.hlt()
	a.jmp("powered off")

	a.label("configure") // eax is a device's register; dx becomes its data port
	a.mov(edx, imm(configAddress))
	a.outPort(eax)
	a.mov(dl, imm(configData))
	a.ret()
}

package guest

// Where ring 0 keeps its things, and what the hardware wants of it.
const (
	interruptTable = 0x17000 // only the timer's and the protection fault's gates
	timerGate      = 0x20
	faultGate      = 13
	gateSize       = 16
	gate           = 0x8e00 // present, ring 0

	taskState  = 0x7000 // only the stack of ring 0 and the ports' bitmap are used
	taskSize   = 0x170
	taskStack  = 0x04
	taskBitmap = 0x64 // the bitmap's offset is in the high half
	bitmap     = 0x68 // all zeros: ring 3 may use the ports below 0x800
	ring0Stack = Origin - 0x200

	localAPIC    = 0xfee00000
	taskSelector = 0x28
	userCode     = 0x20 | 3
	userData     = 0x18 | 3
	interrupts   = 0x202 // flags with interrupts enabled

	hltCode = 0xf4
)

// kernelEntry is the first 64-bit code. It runs in ring 0, which some
// hypervisors emulate instruction by instruction, and so leaves it soon.
func kernelEntry(a *assembler) {
	a.label("kernel")
	a.mov(eax, imm(dataSelector))
	a.movSeg(ss, eax)
	a.mov(esp, imm(Origin))
	a.mov(edi, imm(interruptTable+timerGate*gateSize))
	setGate(a, timerGate, "timer")
	setGate(a, faultGate, "fault")
	a.lidt(absolute(a.addr("interrupts")))

	// Without a BIOS the old interrupt controller is not connected.
	a.mov(eax, imm(localAPIC))
	a.mov(doubleAt(based(rax, 0xf0)), imm(0x1ff))
	a.mov(doubleAt(based(rax, 0x350)), imm(0x700))

	// Ring 3 gets its ports from the bitmap and not by its privilege level:
	// some nested hypervisors lose the level in the flags.
	a.mov(edi, imm(taskState))
	a.xor(eax, eax)
	a.mov(ecx, imm(taskSize/4))
	a.repStosd()
	a.mov(doubleAt(absolute(taskState+taskStack)), imm(ring0Stack))
	a.mov(doubleAt(absolute(taskState+taskBitmap)), imm(bitmap<<16))
	a.mov(eax, imm(taskSelector))
	a.ltr(eax)
	a.jmp("devices")
	handlers(a)
}

// setGate points a gate at a handler; rdi points at the timer's gate.
func setGate(a *assembler, number int64, handler string) {
	at := (number - timerGate) * gateSize
	a.mov(doubleAt(based(rdi, at)), a.addr(handler)+codeSelector<<16)
	a.mov(doubleAt(based(rdi, at+4)), imm(gate))
}

// handlers are what interrupts ring 3, and two routines.
func handlers(a *assembler) {
	a.label("timer")
	a.push(rax)
	a.mov(al, imm(0x20))
	a.out(0x20)
	a.pop(rax)
	a.iretq()

	// Ring 3 may not halt: it faults, and is answered by a halt on its behalf.
	a.label("fault")
	a.add(rsp, imm(8)) // the error code
	a.push(rax)
	a.mov(rax, based(rsp, 8))
	a.cmp(byteAt(based(rax, 0)), imm(hltCode))
	a.jnz("no halt")
	a.inc(quadAt(based(rsp, 8)))
	a.sti()
	a.hlt()
	a.cli()
	a.label("no halt")
	a.pop(rax)
	a.iretq()

	a.label("now") // rax = the time-stamp counter; rdx is lost
	a.rdtsc()
	a.shl(rdx, 32)
	a.or(rax, rdx)
	a.ret()

	a.label("say") // al goes to the debug console
	a.out(0xe9)
	a.ret()
}

// kernelTables are the ports to set up, as pairs of port and value, and the
// processor's descriptors.
func kernelTables(a *assembler) {
	a.label("ports")
	// The interrupt controllers: vectors from 0x20, and only the timer.
	a.emit(0x20, 0x11, 0xa0, 0x11, 0x21, 0x20, 0xa1, 0x28, 0x21, 4, 0xa1, 2)
	a.emit(0x21, 1, 0xa1, 1, 0x21, 0xfe, 0xa1, 0xff)
	a.emit(0x43, 0x34, 0x40, 0xa9, 0x40, 0x04) // timer channel 0: 1193 ticks, 1 kHz
	a.emit(0x61, 0x01)                         // let channel 2 count, for the calibration
	a.label("ports end")

	a.label("descriptors")
	a.word(7*8 - 1)
	a.doubleWord(uint32(a.addr("descriptor table")))
	a.label("interrupts")
	a.word((timerGate+1)*gateSize - 1)
	a.doubleWord(interruptTable)
	a.label("descriptor table")
	a.quadWord(0)
	a.quadWord(0x0020_9a00_0000_0000) // codeSelector
	a.quadWord(0x00cf_9200_0000_ffff) // dataSelector
	a.quadWord(0x00cf_f200_0000_ffff) // userData
	a.quadWord(0x0020_fa00_0000_0000) // userCode
	a.quadWord(0x0000_8900_0000_0000 | taskState<<16 | (taskSize - 1))
	a.quadWord(0) // the upper half of the task's
}

// kernel sets up the devices and goes to ring 3, for good.
func kernel(a *assembler) {
	a.label("devices")
	a.mov(esi, a.addr("ports"))
	a.xor(edx, edx)
	a.label("port")
	a.lodsb()
	a.mov(dl, al)
	a.lodsb()
	a.outPort(al)
	a.cmp(esi, a.addr("ports end"))
	a.jc("port")
	findPowerButton(a)
	a.pushImm(userData)
	a.pushImm(Origin)
	a.pushImm(interrupts)
	a.pushImm(userCode)
	a.pushImm(a.addr("workload"))
	a.iretq()
}

// Package guest is a tiny guest for tests of live migration, and what reads its
// listener; it never starts a hypervisor.
//
// The guest fills a range of its memory, writes a working set in turn at a
// chosen rate, checks each page before it writes it, and sends a heartbeat each
// millisecond to the ISA debug console at port 0xe9. [Params] say what it does
// and make the [Params.Firmware] or the [Params.BootSector] that boots it.
//
// Three things can be asked of it:
//
//  1. [HeartbeatListener]: does it live, has it paused and for how long, does it run twice?
//  2. [Params.Verify]: is every byte of its memory as it must be?
//  3. [ReadState]: what does it say of itself?
//
// QEMU needs these arguments, and a connected HeartbeatListener before the guest runs:
//
//	-bios FIRMWARE -nodefaults -display none
//	-chardev socket,id=listener,path=SOCKET,server=on,wait=off
//	-device isa-debugcon,iobase=0xe9,chardev=listener
//
// # Image of the test guest
//
// This part emits the machine code of a tiny x86 guest, and never runs it.
//
//	boot sector ─┐
//	             ├─→ real mode → long mode, ring 0 → ring 3: fill, then beat and write for ever
//	firmware ROM ┘
//
// The guest exists for tests of live migration: it boots in a fraction of a
// second, keeps every page of its memory in a state that can be predicted, and
// says each millisecond that it lives. What it is to do is in a [Block].
//
// The files read like the program: boot.go is real mode, kernel.go ring 0,
// workload.go ring 3, power.go the power button. assembler.go, operands.go and
// instructions.go are the emitter: one method per instruction that the guest
// uses, labels by name, and passes over the program until no label moves.
package guest

// Package guest is a tiny guest for tests of live migration, and what reads its
// pulse; it never starts a hypervisor.
//
// The guest fills a range of its memory, writes a working set in turn at a
// chosen rate, checks each page before it writes it, and sends a heartbeat each
// millisecond to the ISA debug console at port 0xe9. [Params] say what it does
// and make the [Params.Firmware] or the [Params.BootSector] that boots it.
//
// Three things can be asked of it:
//
//  1. [Pulse]: does it live, has it paused and for how long, does it run twice?
//  2. [Params.Verify]: is every byte of its memory as it must be?
//  3. [ReadState]: what does it say of itself?
//
// QEMU needs these arguments, and a connected Pulse before the guest runs:
//
//	-bios FIRMWARE -nodefaults -display none
//	-chardev socket,id=pulse,path=SOCKET,server=on,wait=off
//	-device isa-debugcon,iobase=0xe9,chardev=pulse
package guest

// Package image emits the machine code of a tiny x86 guest, and never runs it.
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
package image

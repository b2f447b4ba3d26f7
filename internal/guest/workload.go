package guest

// The calibration counts 12.5 ms of the timer's 1,193,182 Hz: the counter's
// kHz are its ticks in that time, times 2, divided by 25.
const (
	rounds     = 4
	countHigh  = 0x3a
	countLow   = 0x43
	kHzDivisor = 25
)

// workload is ring 3. Its registers, from "ready" on:
//
//	rdi  the next page          r8   when the next batch is due
//	ebx  pages left in a pass   r9   when the next heartbeat is due
//	r12  the next page's stamp  r10  ticks between batches
//	r11  StampStep              rbp  ticks between heartbeats
//	r13  errors                 r14  heartbeats
//	r15  pages written          esi  the port of the power button, or 0
func workload(a *assembler) {
	a.label("workload")
	a.mov(al, imm(booted))
	a.call("say")
	calibrate(a)
	intervals(a)
	fill(a)
	beat(a)
	write(a)
	powerRoutines(a)
	due(a)
}

// calibrate finds the time-stamp counter's speed. A round can only seem too
// long, when something else has run on the processor: the shortest counts.
func calibrate(a *assembler) {
	a.mov(r8d, imm(rounds))
	a.mov(rbp, imm(-1))
	a.label("round")
	a.mov(al, imm(0xb0)) // channel 2, mode 0: its output rises at zero
	a.out(0x43)
	a.mov(al, imm(countLow))
	a.out(0x42)
	a.call("now")
	a.mov(rbx, rax)
	a.mov(al, imm(countHigh))
	a.out(0x42) // it counts from here
	a.label("counting")
	a.in(0x61)
	a.test(al, imm(0x20))
	a.jz("counting")
	a.call("now")
	a.sub(rax, rbx)
	a.cmp(rax, rbp)
	a.jnc("longer")
	a.mov(rbp, rax)
	a.label("longer")
	a.dec(r8d)
	a.jnz("round")

	a.mov(rax, rbp)
	a.add(rax, rax)
	a.xor(edx, edx)
	a.mov(ebx, imm(kHzDivisor))
	a.div(rbx)
	a.mov(r8, rax)
}

// intervals clears the state page and turns microseconds into ticks; r8 is the
// counter's speed in kHz.
func intervals(a *assembler) {
	a.mov(edi, imm(statePage))
	a.stosq()
	a.xor(eax, eax)
	a.mov(ecx, imm(stateWords-1))
	a.repStosq()
	a.mov(ebx, imm(1000))
	a.mov(eax, absolute(paramPeriod))
	a.mul(r8)
	a.div(rbx)
	a.mov(r10, rax)
	a.mov(eax, absolute(paramHeartbeat))
	a.mul(r8)
	a.div(rbx)
	a.mov(rbp, rax)
}

// fill gives every page of the range its contents: zeros or a sequence that
// does not compress, and over it a stamp and the page's own address.
func fill(a *assembler) {
	first, step, multiplier := firstStamp, stampStep, Multiplier
	a.mov(edi, imm(Base))
	a.mov(ebx, absolute(paramFillPages))
	a.mov(r8, imm(multiplier))
	a.mov(r11, imm(step))
	a.mov(r12, imm(first))
	a.label("page")
	a.mov(edx, edi)
	a.mov(ecx, imm(PageSize/8))
	a.xor(eax, eax)
	a.test(byteAt(absolute(paramFlags)), imm(flagRandom))
	a.jnz("random")
	a.repStosq()
	a.jmp("stamp")
	a.label("random")
	a.mov(eax, edi)
	a.shr(eax, 12)
	a.label("next word")
	a.imul(rax, r8)
	a.inc(rax)
	a.stosq()
	a.loop("next word")
	a.label("stamp")
	a.mov(based(rdx, 0), r12)
	a.mov(based(rdx, 8), rdx)
	a.dec(ebx)
	a.jnz("page")

	a.inc(quadAt(absolute(statePage + stateReady)))
	a.mov(al, imm(ready))
	a.call("say")
	a.call("now")
	a.mov(r8, rax)
	a.mov(r9, rax)
	a.mov(edi, imm(Base))
	a.mov(ebx, absolute(paramWorkingPages))
	a.xor(r13d, r13d)
	a.xor(r14d, r14d)
	a.xor(r15d, r15d)
}

// beat begins the main loop: it says that the guest lives, when that is due,
// and looks at the power button.
func beat(a *assembler) {
	a.label("main")
	a.mov(rcx, rbp)
	a.mov(rdx, r9)
	a.call("due")
	a.mov(r9, rdx)
	a.jc("batch")
	a.test(r13, r13)
	a.jz("no errors")
	a.mov(al, imm(Bad))
	a.call("say")
	a.label("no errors")
	a.inc(r14)
	a.mov(absolute(statePage+stateBeats), r14)
	a.mov(eax, r14d)
	a.and(al, imm(beatMask))
	a.or(al, imm(Beat))
	a.call("say")
	a.mov(edx, esi)
	a.test(edx, edx)
	a.jz("batch")
	a.inPort(ax)
	a.test(ah, imm(pressed>>8))
	a.jnz("power off")
}

// write checks and stamps as many pages as are due, and then waits for the
// timer. It publishes each page as soon as it is stamped: at any instruction
// the memory is ahead of the state page by at most one page.
func write(a *assembler) {
	a.label("batch")
	a.mov(rcx, r10)
	a.mov(rdx, r8)
	a.call("due")
	a.mov(r8, rdx)
	a.jc("idle")
	a.mov(ecx, absolute(paramBatch))
	a.jrcxz("idle")
	a.label("write")
	a.cmp(based(rdi, 0), r12)
	a.jnz("damaged")
	a.cmp(based(rdi, 8), rdi)
	a.jnz("damaged")
	a.label("repaired")
	a.add(based(rdi, 0), r11)
	a.inc(r15)
	a.mov(absolute(statePage+stateWritten), r15)
	a.add(edi, imm(PageSize))
	a.dec(ebx)
	a.jnz("same pass")
	a.mov(edi, imm(Base))
	a.mov(ebx, absolute(paramWorkingPages))
	a.add(r12, r11)
	a.label("same pass")
	a.loop("write")
	a.jmp("main")

	a.label("idle")
	a.hlt() // see "fault"
	a.jmp("main")

	a.label("damaged")
	a.test(byteAt(absolute(paramFlags)), imm(flagLossy))
	a.jnz("repaired")
	a.inc(r13)
	a.mov(absolute(statePage+stateErrors), r13)
	a.mov(absolute(statePage+imageStateAddress), rdi)
	a.mov(based(rdi, 0), r12)
	a.mov(based(rdi, 8), rdi)
	a.jmp("repaired")
}

// due tells whether the deadline rdx has come: carry clear, and rdx is moved by
// the period rcx. More than 16 periods late or 64 early it starts afresh from
// now: no burst of catching up, and the counter may jump when the guest moves.
func due(a *assembler) {
	a.label("due")
	a.push(rdx)
	a.call("now")
	a.pop(rdx)
	a.push(rax)
	a.sub(rax, rdx)
	a.js("early")
	a.add(rdx, rcx)
	a.shl(rcx, 4)
	a.cmp(rax, rcx)
	a.jbe("little late")
	a.mov(rdx, based(rsp, 0))
	a.label("little late")
	a.pop(rax)
	a.clc()
	a.ret()

	a.label("early")
	a.shl(rcx, 6)
	a.add(rax, rcx)
	a.jns("little early")
	a.mov(rdx, based(rsp, 0))
	a.label("little early")
	a.pop(rax)
	a.stc()
	a.ret()
}

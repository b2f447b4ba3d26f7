package heap

import (
	"runtime/debug"
	"testing"
)

// room is for more than lives in these tests.
const room = 1 << 40

func TestALoanIsReturned(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var l Loan
	l.Take(room) // by two
	l.Take(room)
	if got := chosen(); got != most {
		t.Errorf("%d %% while it is taken, want %d", got, most)
	}
	if l.Return(); chosen() != most {
		t.Errorf("%d %% while one has it still, want %d", chosen(), most)
	}
	if l.Return(); chosen() != usual {
		t.Errorf("%d %% when all have returned it, want %d", chosen(), usual)
	}
}

func TestNobodyLendsToAProcessThatHasChosenForItself(t *testing.T) {
	const own = 70
	defer debug.SetGCPercent(debug.SetGCPercent(own))
	var l Loan
	l.Take(room)
	l.Renew(room)
	if got := chosen(); got != own {
		t.Errorf("%d %%, want %d", got, own)
	}
	if l.Return(); chosen() != own {
		t.Errorf("%d %% afterwards, want %d", chosen(), own)
	}
}

func TestWhatIsChosenMeanwhileStays(t *testing.T) {
	const own = 70
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var l Loan
	l.Take(room)
	debug.SetGCPercent(own)
	if l.Renew(room); chosen() != own {
		t.Errorf("%d %% when it is renewed, want %d", chosen(), own)
	}
	if l.Return(); chosen() != own {
		t.Errorf("%d %% when it is returned, want %d", chosen(), own)
	}
}

func TestALoanThatIsRenewedIsOfTheRoomThereIs(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	var l Loan
	l.Take(room)
	defer l.Return()
	if l.Renew(0); chosen() != usual {
		t.Errorf("%d %% without room, want %d", chosen(), usual)
	}
	if l.Renew(room); chosen() != most {
		t.Errorf("%d %% with room again, want %d", chosen(), most)
	}
}

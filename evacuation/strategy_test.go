package evacuation_test

import (
	"testing"

	"github.com/godwit-vm/godwit/evacuation"
)

func TestStrategiesAreReadAsTheyAreWritten(t *testing.T) {
	for s := range evacuation.External + 1 {
		if got, err := evacuation.ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("ParseStrategy(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := evacuation.ParseStrategy("livemigrate"); err == nil {
		t.Error("an unknown word was read")
	}
}

func TestNamesOutOfRangeSayTheirNumber(t *testing.T) {
	tests := []struct {
		name, got, want string
	}{
		{"strategy", evacuation.Strategy(9).String(), "Strategy(9)"},
		{"mode", evacuation.Mode(9).String(), "Mode(9)"},
		{"order", evacuation.Order(9).String(), "Order(9)"},
		{"cause", evacuation.Cause(99).String(), "Cause(99)"},
		{"a known mode", evacuation.FreeSpotsV059.String(), "FreeSpotsV059"},
		{"a known cause", evacuation.EvacuationTriggered.String(), "EvacuationTriggered"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

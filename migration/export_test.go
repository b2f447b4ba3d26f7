package migration

// Act is the acting half of Step alone.
func (c *Config) Act(m *Spec, s *State, o *Observation) Decision {
	d := Decision{State: *s}
	c.act(m, s, o, &d)
	return d
}

// Judge is the deciding half of Step alone.
func (c *Config) Judge(m *Spec, s *State, o *Observation) Decision {
	d := Decision{State: *s}
	c.judge(m, s, o, &d)
	return d
}

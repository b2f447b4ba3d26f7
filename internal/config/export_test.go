package config

// ParseModel is the name that tests call it by.
var ParseModel = parseModel

package main

import "context"

func sit(context.Context, options) error { return nil }
func engineNames() []string              { return nil }

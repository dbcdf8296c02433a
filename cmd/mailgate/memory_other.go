//go:build !linux

package main

func keepInMemory() {}

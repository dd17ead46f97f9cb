//go:build programs

// Package programs names what the rig builds, so that the module requires it.
package programs

import (
	_ "github.com/fatedier/frp/cmd/frpc"
	_ "github.com/fatedier/frp/cmd/frps"
)

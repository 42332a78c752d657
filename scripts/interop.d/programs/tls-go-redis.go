// needs: go github.com/redis/go-redis/v9@v9.23.0

// go-redis over TLS, with a certificate of its own and with none, on a node that it starts.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"story"
)

var folder = story.Must(os.MkdirTemp("", "locknode-tls-"))

func write(name, kind string, bytes []byte) string {
	path := filepath.Join(folder, name)
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		panic(err)
	}
	return path
}

// A certificate for the loopback address and its key, signed by itself: node and client are both it.
func certificate() (string, string, *x509.Certificate) {
	key := story.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed := story.Must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	bytes := story.Must(x509.MarshalPKCS8PrivateKey(key))
	return write("node.pem", "CERTIFICATE", signed), write("node.key", "PRIVATE KEY", bytes), story.Must(x509.ParseCertificate(signed))
}

func main() {
	defer os.RemoveAll(folder)
	if server := os.Getenv("INTEROP_SERVER"); server != "" && server != "locknode" {
		fmt.Println("not a node of ours")
		os.Exit(77)
	}
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		// Packages are in .interop/go/NAME of the repository.
		target = filepath.Join(os.Getenv("INTEROP_PACKAGES"), "..", "..", "..", "target")
	}
	cert, key, parsed := certificate()
	// Released before the node takes it: no other way is there to ask for a free one.
	free := story.Must(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	node := exec.Command(filepath.Join(target, "release", "locknode"), "serve", "--first-start", "--port", "0",
		"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	said := story.Must(node.StderrPipe())
	if err := node.Start(); err != nil {
		panic(err)
	}
	defer node.Process.Kill()
	for lines := bufio.NewScanner(said); !strings.Contains(lines.Text(), "with TLS"); {
		if !lines.Scan() {
			panic("the node ended before it served")
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	identity := story.Must(tls.LoadX509KeyPair(cert, key))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{identity}, MaxVersion: version}
		client := redis.NewClient(&redis.Options{Addr: address, TLSConfig: config})
		set := story.Must(client.SetNX(story.Background, fmt.Sprint("interop:tls:", version), "token", time.Minute).Result())
		if !set {
			panic("not granted")
		}
		config.Certificates = nil
		stranger := redis.NewClient(&redis.Options{Addr: address, TLSConfig: config, MaxRetries: -1})
		if stranger.Ping(story.Background).Err() == nil {
			panic("served without a certificate")
		}
	}
	fmt.Println(story.Title("github.com/redis/go-redis/v9"), "over TLS 1.2 and 1.3, and refused without a certificate")
}

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeCredentials makes the files that the API server reads: a CA with a leaf for 127.0.0.1, the key pair of
// service-account tokens, and the tokens of people. Elliptic keys, because RSA ones take a visible part of the start.
func writeCredentials(dir string) error {
	now := time.Now()
	caKey, err := newKey()
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "controlplane-ca"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	leafKey, err := newKey()
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return err
	}
	accountKey, err := newKey()
	if err != nil {
		return err
	}
	leafPrivate, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return err
	}
	accountPrivate, err := x509.MarshalPKCS8PrivateKey(accountKey)
	if err != nil {
		return err
	}
	accountPublic, err := x509.MarshalPKIXPublicKey(accountKey.Public())
	if err != nil {
		return err
	}
	var tokens strings.Builder
	for _, who := range append(people, manager) {
		fmt.Fprintf(&tokens, "%s,%s,%s-uid", who.token(), who.name, who.name)
		if who.groups != "" {
			fmt.Fprintf(&tokens, ",%q", who.groups)
		}
		tokens.WriteByte('\n')
	}
	for name, content := range map[string][]byte{
		"ca.crt":        block("CERTIFICATE", caDER),
		"apiserver.crt": block("CERTIFICATE", leafDER),
		"apiserver.key": block("PRIVATE KEY", leafPrivate),
		"sa.key":        block("PRIVATE KEY", accountPrivate),
		"sa.pub":        block("PUBLIC KEY", accountPublic),
		"tokens.csv":    []byte(tokens.String()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (crypto.Signer, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeKubeconfig writes JSON, which is YAML.
func writeKubeconfig(file, server, ca string, who person) error {
	type entry map[string]any
	content, err := json.MarshalIndent(entry{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []entry{{"name": "controlplane", "cluster": entry{"server": server, "certificate-authority": ca}}},
		"users":           []entry{{"name": who.name, "user": entry{"token": who.token()}}},
		"contexts":        []entry{{"name": who.name, "context": entry{"cluster": "controlplane", "user": who.name}}},
		"current-context": who.name,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

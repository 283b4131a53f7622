# Apply the VirtPlatformConfig with action=DryRun
kubectl apply -f - <<EOF
apiVersion: advisor.kubevirt.io/v1alpha1
kind: VirtPlatformConfig
metadata:
  name: virt-higher-density
spec:
  profile: virt-higher-density
  action: DryRun
  options:
    virtHigherDensity:
      enableSwap: true
EOF

# View the generated plan with diffs
kubectl get virtplatformconfig virt-higher-density -o yaml

# Change action from DryRun to Apply
kubectl patch virtplatformconfig virt-higher-density \
  --type='json' -p='[{"op": "replace", "path": "/spec/action", "value":"Apply"}]'

# Watch the VirtPlatformConfig status
kubectl get virtplatformconfig virt-higher-density -w

# Example progression:
# - "Applying configuration..." (MachineConfig created)
# - "Waiting for MachineConfigPool 'worker' to stabilize (Updated: 1/10, Ready: 9/10)"
# - "Waiting for MachineConfigPool 'worker' to stabilize (Updated: 2/10, Ready: 8/10)"
# - ... continues for each node ...
# - "MachineConfigPool 'worker' is ready (all 10 nodes updated)" (Completed)

# Check MachineConfig
kubectl get machineconfig 90-worker-kubelet-swap -o yaml

# Check MachineConfigPool status
kubectl get machineconfigpool worker -o yaml

# On a worker node (after update), verify swap is enabled
oc debug node/<node-name>
chroot /host
swapon --show
cat /etc/openshift/kubelet.conf.d/90-swap.conf

# Check MachineConfigPool status
kubectl get machineconfigpool worker -o yaml

# Look for:
# - degradedMachineCount: Should be 0
# - conditions: Check for errors or degradation
# - machineCount vs updatedMachineCount: Shows progress

# Check for degraded nodes
kubectl get nodes -l node-role.kubernetes.io/worker -o wide

# Check node that's currently updating
kubectl get nodes -l machineconfiguration.openshift.io/currentConfig!=machineconfiguration.openshift.io/desiredConfig

# On the node
oc debug node/<node-name>
chroot /host

# Check if partition exists
ls -l /dev/disk/by-partlabel/CNV_SWAP

# Check systemd unit status
systemctl status swap-provision.service

# Check logs
journalctl -u swap-provision.service

# Setup Kind with mock CRDs
make dev-setup

# Create VirtPlatformConfig
kubectl apply -f - <<EOF
apiVersion: advisor.kubevirt.io/v1alpha1
kind: VirtPlatformConfig
metadata:
  name: virt-higher-density
spec:
  profile: virt-higher-density
  action: DryRun
EOF

# View generated plan (will fail prerequisite check without MachineConfig CRD)
kubectl get virtplatformconfig virt-higher-density -o yaml

# Apply the VirtPlatformConfig with action=DryRun
kubectl apply -f config/samples/loadaware_sample.yaml

# View the generated plan with diffs
kubectl get virtplatformconfig load-aware-rebalancing -o yaml

# Change action from DryRun to Apply
kubectl patch virtplatformconfig load-aware-rebalancing \
  --type='json' -p='[{"op": "replace", "path": "/spec/action", "value":"Apply"}]'

# Check descheduler configuration
kubectl get kubedescheduler cluster -o yaml

# Check machine config
kubectl get machineconfig 99-worker-psi-karg -o yaml

# Complete setup (cluster + CRDs + mocks)
make dev-setup

# Run operator
make run

# Test the profile
kubectl apply -f config/samples/loadaware_sample.yaml
kubectl get virtplatformconfig load-aware-rebalancing -w

# Create baseline resources
kubectl apply -f config/samples/mock_baseline_resources.yaml

# Create configuration plan
kubectl apply -f config/samples/loadaware_sample.yaml

# Watch phases
kubectl get virtplatformconfig -w

# Approve and apply
kubectl patch virtplatformconfig load-aware-rebalancing \
  --type='json' -p='[{"op": "replace", "path": "/spec/action", "value":"Apply"}]'

# Verify changes
kubectl get kubedescheduler cluster -n openshift-kube-descheduler-operator -o jsonpath='{.spec.profiles}' | grep KubeVirtRelieveAndMigrate
kubectl get kubedescheduler cluster -n openshift-kube-descheduler-operator -o jsonpath='{.spec.profileCustomizations}'
kubectl get machineconfig 99-worker-psi-karg -o jsonpath='{.spec.kernelArguments}' | grep psi

kubectl get virtplatformconfig -o json | jq '.items[] | select(.status.conditions[] | select(.type=="Drifted" and .status=="True"))'

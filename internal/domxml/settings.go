package domxml

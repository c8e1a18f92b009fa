"""Operations of neural networks: activations, losses, convolution, pooling, normalisation."""

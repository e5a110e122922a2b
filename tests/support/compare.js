/* Draws a picture at a quarter of its size, and compares it with an approved picture of that size. */
async ([current, approved, scale, far]) => {
  const image = async (data) => createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob());
  const pixels = (bitmap, width, height) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(bitmap, 0, 0, width, height);
    return [canvas, context];
  };
  const now = await image(current);
  const width = Math.round(now.width / scale), height = Math.round(now.height / scale);
  const [canvas, context] = pixels(now, width, height);
  const data = context.getImageData(0, 0, width, height);
  if (approved === null) {
    for (let at = 0; at < data.data.length; at++) if (at % 4 < 3) data.data[at] = Math.min(255, Math.round(data.data[at] / 17) * 17);
    context.putImageData(data, 0, 0);
    return { picture: canvas.toDataURL('image/png').split(',')[1] };
  }
  const before = await image(approved);
  const other = pixels(before, before.width, before.height)[1].getImageData(0, 0, before.width, before.height);
  let different = 0;
  const rows = Math.min(height, before.height), columns = Math.min(width, before.width);
  for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) {
    const one = 4 * (y * width + x), two = 4 * (y * before.width + x);
    if ([0, 1, 2].some((each) => Math.abs(data.data[one + each] - other.data[two + each]) > far)) different++;
  }
  return { size: [width, height], before: [before.width, before.height], share: different / (rows * columns) };
}
